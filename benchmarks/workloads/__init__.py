"""The registry: a workload is a module here, named in ``WORKLOADS``, group after group."""

from benchmarks.workload import Workload
from benchmarks.workloads import (
    adaptive,
    first_picture,
    flights_full,
    kernels_first_result,
    kernels_fold,
    kernels_growth,
    kernels_keys,
    kernels_multi,
    kernels_single,
    lightsaber_fig15,
    live_latency,
    live_memory,
    over_rows,
    signals,
    slicing,
    slicing_aggregates,
    slicing_disorder,
    slicing_memory,
    slideside_fig3,
    soak,
    spark_batches,
    spark_bytes,
    spark_foreign,
    spark_native,
    spark_others,
    spark_scan,
)

_MODULES = (
    first_picture,
    flights_full,
    live_latency,
    live_memory,
    kernels_single,
    kernels_multi,
    kernels_growth,
    kernels_keys,
    kernels_first_result,
    kernels_fold,
    adaptive,
    over_rows,
    signals,
    slicing,
    slicing_disorder,
    slicing_aggregates,
    slicing_memory,
    slideside_fig3,
    lightsaber_fig15,
    spark_bytes,
    spark_foreign,
    spark_others,
    soak,
)
#: Modules that measure several things in one way.
_FAMILIES = (spark_native, spark_scan, spark_batches)

WORKLOADS: dict[str, Workload] = {module.WORKLOAD.name: module.WORKLOAD for module in _MODULES} | {
    workload.name: workload for module in _FAMILIES for workload in module.WORKLOADS
}
