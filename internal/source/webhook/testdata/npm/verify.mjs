// Reads requests from standard input and says of each whether the library of
// Standard Webhooks takes its signature.
import { Webhook } from "standardwebhooks";

let text = "";
for await (const piece of process.stdin) text += piece;
for (const { secret, headers, body } of JSON.parse(text)) {
  try {
    new Webhook(secret).verify(body, headers);
    console.log("true");
  } catch {
    console.log("false");
  }
}
