"""Makes the bucket for artifacts, if it is not there: make_bucket.py NAME. Waits for the store."""

from __future__ import annotations

import os
import sys
import time

import boto3
from botocore.exceptions import ClientError, EndpointConnectionError

ATTEMPTS = 60


def main(bucket: str) -> int:
    store = boto3.client("s3", endpoint_url=os.environ["MLFLOW_S3_ENDPOINT_URL"])
    for _ in range(ATTEMPTS):
        try:
            store.create_bucket(Bucket=bucket)
            print(f"made the bucket {bucket}")
            return 0
        except ClientError as error:
            if error.response["Error"]["Code"] in {
                "BucketAlreadyOwnedByYou",
                "BucketAlreadyExists",
            }:
                return 0
            raise
        except EndpointConnectionError:
            time.sleep(1)
    print(f"no answer from {os.environ['MLFLOW_S3_ENDPOINT_URL']} in {ATTEMPTS} s", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
