"""The registry: a workload is a module here, named in ``WORKLOADS``."""

from benchmarks.workload import Workload
from benchmarks.workloads import first_picture, flights_full

WORKLOADS: dict[str, Workload] = {
    workload.name: workload for workload in (first_picture.WORKLOAD, flights_full.WORKLOAD)
}
