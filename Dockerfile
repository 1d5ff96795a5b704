# An image with slackwater's command, for a node of a Ray cluster as well; see docs/guide/install.md.
# Java is in it as a wheel.

ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
WORKDIR /source
RUN python -m venv /opt/slackwater
ENV PATH=/opt/slackwater/bin:$PATH
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY state state
COPY actors actors
COPY spark_bridge spark_bridge
COPY slackwater slackwater
ARG EXTRAS=verify
RUN pip install --no-cache-dir --constraint requirements.lock ".[${EXTRAS}]"

FROM python:${PYTHON}-slim
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
