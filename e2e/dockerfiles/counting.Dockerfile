# What most scenarios run: the supervisor and a program that counts, without TensorFlow.
ARG SUPERVISOR
FROM ${SUPERVISOR}
COPY tests/programs/counter.py ./
