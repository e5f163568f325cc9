"""redis-py's Lock as a client of lockfault: docs/subject.md.

With the argument no-timeout locks have no lease, as is redis-py's default.
"""
import json
import sys

import redis
from redis.backoff import NoBackoff
from redis.exceptions import LockError
from redis.retry import Retry


class Subject:
    def __init__(self):
        self.locks = {}

    def init(self, q):
        node = q["nodes"][0]
        self.lease = None if "no-timeout" in sys.argv else q["ttl_ms"] / 1000
        self.redis = redis.Redis(
            host=node["host"], port=node["port"], db=node.get("db", 0),
            username=node.get("username"), password=node.get("password"),
            socket_timeout=q["read_timeout_ms"] / 1000,
            retry=Retry(NoBackoff(), q.get("retries", 0)), retry_on_timeout=True)
        return True

    def lock(self, q):
        if q["key"] not in self.locks:
            self.locks[q["key"]] = self.redis.lock(q["key"], timeout=self.lease)
        return self.locks[q["key"]]

    def acquire(self, q):
        return self.lock(q).acquire(blocking_timeout=q["within_ms"] / 1000)

    def attempt(self, q):
        return self.lock(q).acquire(blocking=False)

    def release(self, q):
        self.lock(q).release()
        return True

    def extend(self, q):
        return self.lock(q).reacquire()


subject = Subject()
for line in sys.stdin:
    q = json.loads(line)
    if q["do"] == "shutdown":
        break
    answer = {"id": q["id"]}
    try:
        done = getattr(subject, {"try": "attempt"}.get(q["do"], q["do"]))(q)
        answer["answer"] = "ok" if done else "failed"
    except LockError as e:  # not held, or no longer
        answer.update(answer="failed", error=str(e))
    except redis.RedisError as e:
        answer.update(answer="error", error=repr(e))
    print(json.dumps(answer), flush=True)
