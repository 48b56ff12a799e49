"""The library for training programs: strategies, checkpoints, loops, datasets, reports. The only importer of TensorFlow."""
