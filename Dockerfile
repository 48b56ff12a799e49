# The operator: docker build -t dtj/operator .    docs/images.md says what is in it and what can be set.
ARG BASE=docker.io/library/python:3.11-slim

# Two environments: one that makes wheels and stays behind, one without pip that becomes the image's.
FROM ${BASE} AS build
WORKDIR /src
COPY requirements/build.txt requirements/operator.txt requirements/
RUN --mount=type=secret,id=pip --mount=type=secret,id=certificates \
    export PIP_CONFIG_FILE=/run/secrets/pip PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
 && python -m venv /build && python -m venv --without-pip /opt/venv \
 && locked="install --quiet --no-compile --no-deps --require-hashes --only-binary :all: -r requirements" \
 && /build/bin/pip $locked/build.txt \
 && /build/bin/pip --python /opt/venv/bin/python $locked/operator.txt \
 # Nobody can write bytecode later. By hash, unchecked: a layer keeps no fractions of a second.
 && /opt/venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/venv/lib
COPY pyproject.toml README.md LICENSE ./
COPY requirements/operator.in requirements/cli.in requirements/
COPY operator operator
COPY worker_image worker_image
RUN /build/bin/pip wheel --quiet --no-cache-dir --no-deps --no-index --no-build-isolation --wheel-dir /wheels . ./worker_image \
 && /build/bin/pip --python /opt/venv/bin/python install --quiet --no-compile --no-deps --no-index /wheels/*.whl \
 && /opt/venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/venv/lib/python3*/site-packages/dtj_*

FROM ${BASE}
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="dtj operator" \
      org.opencontainers.image.description="Kubernetes operator that runs distributed TensorFlow training as one resource" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["python", "-m", "dtj_operator"]
