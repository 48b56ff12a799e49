"""Stands for scikit-learn, which Keras imports where it is there: a quarter of TensorFlow's start, for nothing here."""

raise ImportError("no program of these tests needs scikit-learn")
