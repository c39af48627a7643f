import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// start runs `countersign dev` (PostgreSQL, the API, a worker, an MCP server with notes, a mailbox) in a folder of its own, and
// tells the tests where it is. It returns the function that ends it.
export default async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-e2e-'))
  const program = spawn('../bin/countersign', ['dev', '--listen', '127.0.0.1:0', '--data-dir', folder], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  const url = await new Promise<string>((resolve, reject) => {
    const hear = (piece: Buffer) => {
      said += piece.toString()
      const found = /page +(http:\/\/\S+)\/login#code=/.exec(said)
      if (found) resolve(found[1]!)
    }
    program.stdout.on('data', hear)
    program.stderr.on('data', hear)
    program.on('exit', (code) => reject(new Error(`countersign dev ended with ${code}:\n${said}`)))
    setTimeout(() => reject(new Error(`countersign dev was not up within three minutes:\n${said}`)), 180_000).unref()
  })
  process.env.E2E_URL = url
  process.env.E2E_TOKENS = readFileSync(join(folder, 'tokens.json'), 'utf8')
  return async () => {
    const ended = new Promise((resolve) => program.on('exit', resolve))
    program.kill('SIGINT')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
}
