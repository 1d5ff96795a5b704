# An image with slackwater's command, for a node of a Ray cluster as well; see docs/guide/install.md.
# Java is in it as a wheel.

ARG PYTHON=3.11
# A digest makes the base as fixed as the packages: python:3.11-slim@sha256:...
ARG BASE=python:${PYTHON}-slim

FROM ${BASE} AS build
WORKDIR /source
RUN python -m venv /opt/slackwater
ENV PATH=/opt/slackwater/bin:$PATH
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY state state
COPY actors actors
COPY spark_bridge spark_bridge
COPY slackwater slackwater
ARG EXTRAS=verify
# With hashes pip takes a lock only as a whole; uv verifies those of the packages that the extras need.
RUN sed -n '/^uv==/,/[^\\]$/p' requirements.lock > uv.lock \
    && pip install --no-cache-dir --require-hashes --requirement uv.lock \
    && uv pip install --no-cache --python /opt/slackwater/bin/python --constraint requirements.lock \
       --build-constraint requirements.lock ".[${EXTRAS}]" \
    && pip uninstall --yes uv

FROM ${BASE}
# `ps` is what Spark's and Ray's scripts ask for.
RUN apt-get update \
    && apt-get install --no-install-recommends --yes procps=2:* \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 slackwater
COPY --from=build /opt/slackwater /opt/slackwater
ENV PATH=/opt/slackwater/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 1000
WORKDIR /home/slackwater
# Without arguments a node of a cluster can be started: docker run IMAGE ray start ...
CMD ["slackwater", "--help"]
