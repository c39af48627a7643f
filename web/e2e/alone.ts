// A program for what would disturb the other tests: an issuer changes how everybody logs in, and a restart cuts every
// stream.
import { test as base } from './fixture'
import { type Issuer, issue } from './issuer'
import { type Program, start } from './program'

export const client = 'countersign-web'

export interface Alone {
  program: Program
  issuer: Issuer
}

// The worker that has this fixture runs no other tests, so that its environment names this program.
export const test = base.extend<object, { alone: Alone }>({
  alone: [
    async ({}, use) => {
      const program = await start()
      process.env.E2E_URL = program.url
      process.env.E2E_TOKENS = program.tokens
      const issuer = await issue(client, `${program.url}/auth/callback`)
      await use({ program, issuer })
      issuer.close()
      await program.stop()
    },
    { scope: 'worker', auto: true, timeout: 180_000 },
  ],
})
