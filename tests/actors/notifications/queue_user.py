"""A user of the SQS server with few rights."""

from __future__ import annotations

import json
import urllib.request

from slackwater.testing.servers.sqs_server import SqsServer


def user(server: SqsServer, *actions: str) -> dict[str, str]:
    """Credentials with these actions; from this call on the server checks credentials."""
    iam = server.client("iam")
    iam.create_user(UserName="reader")
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName="reader", PolicyName="queue", PolicyDocument=policy)
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    request = urllib.request.Request(
        f"{server.endpoint}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}
    )
    with urllib.request.urlopen(request):
        pass
    return {
        **server.storage_options,
        "access_key_id": key["AccessKeyId"],
        "secret_access_key": key["SecretAccessKey"],
    }
