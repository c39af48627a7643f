// The first answers, before anything is drawn.
import { wasEarly } from '../lib/client'
import { meQuery } from '../lib/me'
import { queries } from '../lib/query'
import { opensFirst, readAhead } from '../views/inbox/ahead'
import { countsQuery, keyOf } from '../views/inbox/items'
import { inboxQuery } from '../views/inbox/loaded'
import { recoveryQuery } from './held'

// atMost is the time in milliseconds that the first drawing waits for answers.
const atMost = 100

// firstRead waits for the answers to the requests of start.js. An inbox that is drawn once is shown sooner than one
// that is laid out and painted four times.
export function firstRead(): Promise<unknown> | undefined {
  if (!wasEarly('/api/v1/me')) return
  const read = [
    queries.prefetchQuery(meQuery),
    queries.prefetchQuery(countsQuery({})),
    queries.prefetchQuery(recoveryQuery),
    readInbox().catch(() => {}), // the list shows its error
  ]
  return Promise.race([Promise.all(read), new Promise((resolve) => setTimeout(resolve, atMost))])
}

async function readInbox() {
  const { items } = await queries.fetchQuery(inboxQuery({}))
  const open = /^\/inbox\/([^/]+)$/.exec(location.pathname)?.[1]
  const item = open ? items.find((one) => keyOf(one) === open) : opensFirst() && items[0]
  if (item) await readAhead(item)
}
