// Requests for an item before a person opens it.
import { queries } from '../../lib/query'
import { forecastQuery } from './decide'
import { actionQuery, decided, type Item, keyOf, toolQuery } from './items'

// readAhead reads all that is shown of an item, as far as it is not known.
export const readAhead = (item: Item) =>
  Promise.all([
    queries.prefetchQuery(actionQuery(keyOf(item))),
    queries.prefetchQuery(toolQuery(item.tool)),
    decided(item.kind) && queries.prefetchQuery(forecastQuery(keyOf(item))),
  ])

// closed is the history state of an address at which a person closed the open item.
export const closed = 'closed'

// opensFirst reports whether the first item of a list opens by itself: on a wide window, unless a person closed one.
export const opensFirst = () => history.state !== closed && !matchMedia('(max-width: 900px)').matches
