"""Stands for scikit-learn, which Keras imports where it is installed: a fifth of TensorFlow's start, for nothing here."""

raise ImportError("no program of these tests needs scikit-learn")
