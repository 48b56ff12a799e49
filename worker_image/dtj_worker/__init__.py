"""What runs inside the pods of a job: the contract with the operator, the supervisor, and the library for training programs."""
