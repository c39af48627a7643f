// An MCP server over HTTP whose tools a test changes while it runs.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Tool {
  name: string
  title?: string
  description?: string
  inputSchema: object
  annotations?: object
}

export interface McpServer {
  url: string
  // tools are those that the next listing finds.
  tools: Tool[]
  // down has every request answered with 503.
  down: boolean
  stop: () => Promise<void>
}

interface Call {
  id?: number | string
  method: string
  params?: { protocolVersion?: string }
}

// serve starts a server with some tools on a free port.
export async function serve(tools: Tool[]): Promise<McpServer> {
  const state: McpServer = { url: '', tools, down: false, stop: () => Promise.resolve() }
  const answer = ({ method, params }: Call): object => {
    switch (method) {
      case 'initialize':
        return {
          protocolVersion: params?.protocolVersion ?? '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'changing', version: '1' },
        }
      case 'tools/list':
        return { tools: state.tools }
      case 'tools/call':
        return { content: [{ type: 'text', text: 'done' }] }
      default:
        return {}
    }
  }
  const server: Server = createServer((request, response) => {
    let body = ''
    request.on('data', (piece: Buffer) => (body += piece.toString()))
    request.on('end', () => {
      if (state.down) return response.writeHead(503, { 'Content-Type': 'text/plain' }).end('closed for today')
      if (request.method !== 'POST') return response.writeHead(405).end()
      const call = JSON.parse(body) as Call
      if (call.id === undefined) return response.writeHead(202).end()
      response
        .writeHead(200, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: call.id, result: answer(call) }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  state.stop = () =>
    new Promise((resolve) => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
  return state
}
