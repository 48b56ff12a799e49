# An image of somebody else, into which the supervisor is brought: TensorFlow and a script, nothing of ours.
ARG TENSORFLOW
FROM ${TENSORFLOW}
RUN pip install --no-cache-dir scikit-learn
WORKDIR /somewhere
COPY examples/digits/fit.py ./
USER 4321:4321
CMD ["python", "fit.py"]
