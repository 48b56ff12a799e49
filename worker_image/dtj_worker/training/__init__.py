"""The library for training programs: strategies, checkpoints, loops, datasets. The only importer of TensorFlow."""
