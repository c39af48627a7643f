// The first answers, before anything is drawn.
import { wasEarly } from '../lib/client'
import { meQuery } from '../lib/me'
import { queries } from '../lib/query'
import { opensFirst, readAhead } from '../views/inbox/ahead'
import { countsQuery, keyOf } from '../views/inbox/items'
import { inboxQuery } from '../views/inbox/loaded'
import { recoveryQuery } from './held'

// atMost is how many milliseconds nothing is drawn for the sake of answers that are on their way.
const atMost = 100

// firstRead waits for the answers that start.js asked for: an inbox drawn in one piece is shown sooner than one drawn
// in four, since each is laid out and painted.
export function firstRead(): Promise<unknown> | undefined {
  if (!wasEarly('/api/v1/me')) return
  const read = [
    queries.prefetchQuery(meQuery),
    queries.prefetchQuery(countsQuery({})),
    queries.prefetchQuery(recoveryQuery),
    readInbox(),
  ]
  return Promise.race([Promise.all(read), new Promise((resolve) => setTimeout(resolve, atMost))])
}

async function readInbox() {
  const list = inboxQuery({})
  await queries.prefetchQuery(list)
  const items = queries.getQueryData<Awaited<ReturnType<typeof list.queryFn>>>(list.queryKey)?.items
  const open = /^\/inbox\/([^/]+)$/.exec(location.pathname)?.[1]
  const item = open ? items?.find((one) => keyOf(one) === open) : opensFirst() && items?.[0]
  if (item) await readAhead(item)
}
