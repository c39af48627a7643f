// The client that the conformance suite starts: it hands the server's address to the
// test, which logs in and calls a tool there, and ends with an error if that fails.
const [, , test, server] = process.argv
const query = new URLSearchParams({
  url: server, context: process.env.MCP_CONFORMANCE_CONTEXT ?? '', scenario: process.env.MCP_CONFORMANCE_SCENARIO,
})
const answer = await fetch(`${test}?${query}`)
if (!answer.ok) {
  console.error(await answer.text())
  process.exit(1)
}
