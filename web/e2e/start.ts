import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { api } from './fixture'
import { seed } from './seed'

// start runs `countersign dev` (PostgreSQL, the API, a worker, an MCP server with notes, a mailbox) in a folder of its own, and
// tells the tests where it is. It returns the function that ends it.
export default async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-e2e-'))
  // PostgreSQL runs as another user where the tests run as root, and has to enter the folder.
  chmodSync(folder, 0o711)
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
  // The tests propose more than one agent may that nobody answers.
  await api('owner', 'PUT', '/api/v1/settings', { ...(await api('owner', 'GET', '/api/v1/settings')), session_pending_max: 5_000, session_minute_max: 50_000 })
  process.env.E2E_SEEDED = JSON.stringify(await seed())
  return async () => {
    const ended = new Promise((resolve) => program.on('exit', resolve))
    program.kill('SIGINT')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
}
