# A node, a gateway and the command line in one image; what is run stands behind its name.
#
#   docker build --tag cortadodb .
#   docker run --read-only --tmpfs /tmp --volume cortado:/var/lib/cortado cortadodb
#
# Nothing in it needs a shell. It runs as a user without rights, and writes to /var/lib/cortado and /tmp alone.

FROM python:3.12-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN ["python", "-m", "venv", "/opt/cortado"]
WORKDIR /source
# What is tested, by hash, before what changes with every commit.
COPY requirements-image.lock .
RUN ["/opt/cortado/bin/pip", "install", "--require-hashes", "--requirement", "requirements-image.lock"]
COPY . .
RUN ["/opt/cortado/bin/pip", "install", "--no-deps", "."]

FROM python:3.12-slim
ENV PATH=/opt/cortado/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    CORTADO_SERVER_DATA_DIR=/var/lib/cortado/data \
    XDG_CACHE_HOME=/var/lib/cortado/cache
COPY --from=build /opt/cortado /opt/cortado
# A new volume takes its owner from here.
RUN ["install", "--directory", "--owner=7621", "--group=7621", "--mode=0700", "/var/lib/cortado"]
USER 7621:7621
WORKDIR /var/lib/cortado
VOLUME /var/lib/cortado
EXPOSE 7621 7622 7623 7629 7630
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["cortado", "health", "--timeout", "4"]
ENTRYPOINT ["cortado"]
CMD ["server"]
