"""The operator of DistributedTrainingJobs, its embedded cluster, and the `dtj` command."""
