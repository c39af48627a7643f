// The real program, in a folder of its own.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Program {
  url: string
  // tokens is a JSON object with the tokens of the tenant, one of each role.
  tokens: string
  // restart ends the program, runs between, and starts the program again at the same address, with the same data.
  restart: (between?: () => Promise<void>) => Promise<void>
  // database returns the address of the database, as its owner.
  database: () => string
  // recover runs `countersign recover` on the database.
  recover: (...args: string[]) => void
  stop: () => Promise<void>
}

// run starts `countersign dev` and returns its address once it is up.
function run(folder: string, listen: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn('../bin/countersign', ['dev', '--listen', listen, '--data-dir', folder], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  return new Promise((resolve, reject) => {
    const hear = (piece: Buffer) => {
      said += piece.toString()
      const found = /page +(http:\/\/\S+)\/login#code=/.exec(said)
      if (found) resolve({ child, url: found[1]! })
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('exit', (code) => reject(new Error(`countersign dev ended with ${code}:\n${said}`)))
    setTimeout(() => reject(new Error(`countersign dev was not up within three minutes:\n${said}`)), 180_000).unref()
  })
}

async function end(child: ChildProcess) {
  const ended = new Promise((resolve) => child.on('exit', resolve))
  child.kill('SIGINT')
  await ended
}

// start runs the program (PostgreSQL, the API, a worker, an MCP server with notes, a mailbox) until it is stopped.
export async function start(): Promise<Program> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-e2e-'))
  // PostgreSQL runs as another user where the tests run as root, and has to enter the folder.
  chmodSync(folder, 0o711)
  let { child, url } = await run(folder, '127.0.0.1:0')
  const database = () => {
    const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) =>
      name.endsWith('postmaster.pid'),
    )
    // The lines are the process, the folder, the start, the port and the folder of the socket.
    const [, , , port, socket] = readFileSync(join(folder, found!), 'utf8').split('\n')
    return `postgres:///countersign?user=postgres&port=${port}&host=${encodeURIComponent(socket!)}`
  }
  return {
    url,
    tokens: readFileSync(join(folder, 'tokens.json'), 'utf8'),
    restart: async (between) => {
      await end(child)
      await between?.()
      ;({ child } = await run(folder, new URL(url).host))
    },
    database,
    recover: (...args) => {
      execFileSync('../bin/countersign', ['recover', '--by', 'Ana', ...args], {
        env: { ...process.env, DATABASE_URL: database() },
      })
    },
    stop: async () => {
      await end(child)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
