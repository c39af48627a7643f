// A model server for tests: llama.cpp's engine, as npm has it prebuilt, behind
// the part of OpenAI's interface that the client of local models uses.
//
// usage: node engine.mjs MODEL.gguf NAME CONTEXT SLOTS
// It prints its address as a line of JSON, and ends with its standard input.
import { createServer } from 'node:http'
import { getLlama, LlamaChat, LlamaLogLevel, resolveChatWrapper } from 'node-llama-cpp'

const [file, name, context, slots] = process.argv.slice(2)
// One thread: more would spin beside the tests that run at the same time.
const llama = await getLlama({ build: 'never', gpu: false, maxThreads: 1, logLevel: LlamaLogLevel.error })
const model = await llama.loadModel({ modelPath: file })
const chatWrapper = resolveChatWrapper(model)
const memory = await model.createContext({ contextSize: Number(context), sequences: Number(slots) })

// Free sequences, and who waits for one.
const free = [...Array(Number(slots))].map(() => memory.getSequence())
const queue = []
const acquire = () => new Promise((done) => { queue.push(done); next() })
const release = (sequence) => { free.push(sequence); next() }
function next() {
  while (free.length > 0 && queue.length > 0) queue.shift()(free.shift())
}

class Refusal extends Error {
  constructor(status, type, message) { super(message); Object.assign(this, { status, type }) }
}

// Grammars by the text of their schema.
const grammars = {}
async function grammarOf(format) {
  if (format === undefined) return undefined
  const schema = format.type === 'json_schema' && format.json_schema?.schema
  if (!schema) throw new Refusal(400, 'invalid_request_error', 'only a nested json_schema is taken')
  return grammars[JSON.stringify(schema)] ??= await llama.createGrammarForJsonSchema(schema)
}

const count = (text) => model.tokenize(text).length

async function answer(request) {
  const prompt = request.messages.reduce((sum, m) => sum + count(m.content) + 4, 0)
  const maxTokens = request.max_tokens ?? 64
  if (prompt + maxTokens > Number(context)) throw new Refusal(400, 'exceed_context_size_error', 'the prompt is longer than the context size')
  const grammar = await grammarOf(request.response_format)
  const turns = request.messages.map((m) => ({ type: m.role, text: m.content }))
  const contextSequence = await acquire()
  const chat = new LlamaChat({ contextSequence, chatWrapper })
  try {
    const made = await chat.generateResponse([...turns, { type: 'model', response: [] }], { grammar, maxTokens, temperature: 0 })
    const finish = made.metadata.stopReason === 'maxTokens' ? 'length' : 'stop'
    return {
      object: 'chat.completion', model: name,
      choices: [{ index: 0, finish_reason: finish, message: { role: 'assistant', content: made.response } }],
      usage: { prompt_tokens: prompt, completion_tokens: count(made.response) },
    }
  } finally {
    chat.dispose({ disposeSequence: false })
    release(contextSequence)
  }
}

const server = createServer(async (request, response) => {
  const send = (status, body) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  try {
    if (request.url === '/v1/models') return send(200, { object: 'list', data: [{ id: name, object: 'model', max_model_len: Number(context) }] })
    if (request.url !== '/v1/chat/completions') throw new Refusal(404, 'not_found_error', 'there is nothing here')
    const parts = []
    for await (const part of request) parts.push(part)
    send(200, await answer(JSON.parse(Buffer.concat(parts).toString())))
  } catch (error) {
    send(error.status ?? 500, { error: { type: error.type ?? 'server_error', message: error.message } })
  }
})
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` })))
process.stdin.resume().on('end', () => process.exit(0))
