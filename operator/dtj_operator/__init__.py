"""The operator of DistributedTrainingJobs, its embedded cluster and the `dtj` command. What both sides of a pod share is `dtj_worker.contract`."""
