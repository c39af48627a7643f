import { api } from './fixture'
import { start as run } from './program'
import { seed } from './seed'

// start runs the program, and tells the tests where it is. It returns the function that ends it.
export default async function start() {
  const program = await run()
  process.env.E2E_URL = program.url
  process.env.E2E_TOKENS = program.tokens
  process.env.E2E_DATABASE = program.database()
  // The tests propose more than one agent may that nobody answers.
  await api('owner', 'PUT', '/api/v1/settings', {
    ...(await api('owner', 'GET', '/api/v1/settings')),
    session_pending_max: 5_000,
    session_minute_max: 50_000,
  })
  process.env.E2E_SEEDED = JSON.stringify(await seed())
  return program.stop
}
