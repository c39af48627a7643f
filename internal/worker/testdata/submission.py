"""A server for outgoing mail whose answers to mails are its arguments.

It prints its port, then the answer and the mail of each transaction.
"""

import asyncio
import base64
import logging
import sys

from aiosmtpd.smtp import SMTP, AuthResult


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=data.password == b"secret-of-the-tests")


class Handler:
    def __init__(self, answers):
        self.answers = answers

    async def handle_DATA(self, server, session, envelope):
        answer = self.answers.pop(0)
        mail = base64.b64encode(envelope.original_content).decode()
        print(answer, mail, flush=True)
        if answer in ("cut", "drop"):
            server.transport.abort()
        if answer == "hold":
            await asyncio.Event().wait()
        return "451 later" if answer == "defer" else "250 taken"


async def main():
    logging.getLogger("mail.log").setLevel(logging.ERROR)
    handler = Handler(sys.argv[1:])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(handler, authenticator=authenticate, auth_required=True, auth_require_tls=False), "127.0.0.1", 0)
    print("port", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
