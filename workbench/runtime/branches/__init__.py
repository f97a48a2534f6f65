"""The branches of the operator: one for each way in which windows come to be over a fold."""
