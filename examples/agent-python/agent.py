"""Asks Countersign to store a note, waits for what becomes of it, and prints
that. It needs nothing but the standard library of Python 3.9 or later."""

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

FAILED, DENIED, WAITS = 1, 2, 3


def propose(proposal, wait):
    """Proposes an action and returns the answer's status and document."""
    query = urllib.parse.urlencode({"wait": wait})
    request = urllib.request.Request(
        os.environ["COUNTERSIGN_URL"] + "/api/v1/actions?" + query,
        data=json.dumps(proposal).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["COUNTERSIGN_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=360) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as problem:
        return problem.code, json.load(problem)


def main(title, body):
    status, answer = propose(
        {
            "type": "mcp.exec",
            # Makes the proposal safe to send again: the same name with the
            # same content is the same action.
            "external_id": f"note {title}",
            "tool": {"source": "notes", "name": "notes.create"},
            "args": {"title": title, "body": body},
        },
        os.environ.get("AGENT_WAIT", "30s"),
    )
    if status == 403 and "action" in answer:
        print("denied:", answer["detail"])
        return DENIED
    if status >= 400:
        print("error:", answer.get("detail", answer["title"]), answer.get("errors", ""), file=sys.stderr)
        return FAILED
    phase = answer["phase"]
    if phase == "completed":
        print("done:", json.dumps(answer["envelope"]["result"].get("output")))
        return 0
    if phase == "pending":
        print("waits for a person:", answer["envelope"]["action_id"])
        return WAITS
    if phase == "denied":
        print("denied:", answer["decision"]["note"])
        return DENIED
    print("not done:", phase)
    return FAILED


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: agent.py TITLE BODY")
    sys.exit(main(sys.argv[1], sys.argv[2]))
