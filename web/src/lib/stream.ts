// Server-sent events, read with fetch: unlike EventSource it says which status the server answered, and which ids came
// without an event.
import { Problem } from './client'
import { parse } from './json'

export interface Message {
  id: string
  event: string
  data: string
}

// Reader turns pieces of a stream into messages.
export class Reader {
  private rest = ''
  private id = ''
  private event = ''
  private data: string[] = []

  // read returns the messages that end in a piece. One that has only an id has an empty data.
  read(piece: string): Message[] {
    const lines = (this.rest + piece).split('\n')
    this.rest = lines.pop() ?? ''
    const messages: Message[] = []
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      const colon = line.indexOf(':')
      const [name, value] = colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')]
      if (line === '') {
        if (this.id || this.data.length > 0)
          messages.push({ id: this.id, event: this.event, data: this.data.join('\n') })
        this.id = this.event = ''
        this.data = []
      } else if (name === 'id') this.id = value
      else if (name === 'event') this.event = value
      else if (name === 'data') this.data.push(value)
    }
    return messages
  }
}

// silence is after how long without a word a stream counts as lost. The server says something every 15 s.
const silence = 40_000

// follow reads a stream until it ends, and throws why it did. heard is called for every sign of life.
export async function follow(
  to: string,
  signal: AbortSignal,
  opened: () => void,
  heard: (messages: Message[]) => void,
): Promise<void> {
  const ended = new AbortController()
  const end = () => ended.abort()
  signal.addEventListener('abort', end)
  addEventListener('offline', end)
  let quiet = setTimeout(end, silence)
  try {
    const answer = await fetch(to, {
      headers: { Accept: 'text/event-stream, application/problem+json' },
      signal: ended.signal,
      redirect: 'error',
      cache: 'no-store',
    })
    if (!answer.ok || !answer.body)
      throw new Problem(
        answer.status,
        (parse((await answer.text()) || '{}') ?? {}) as Record<string, unknown>,
        answer.headers,
      )
    opened()
    const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    const reader = new Reader()
    for (;;) {
      const { done, value } = await pieces.read()
      if (done) return
      clearTimeout(quiet)
      quiet = setTimeout(end, silence)
      heard(reader.read(value))
    }
  } finally {
    clearTimeout(quiet)
    signal.removeEventListener('abort', end)
    removeEventListener('offline', end)
    ended.abort()
  }
}
