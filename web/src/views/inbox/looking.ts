import type { Complaint } from '../../form/editing'
import type { Folds } from '../../form/text'
import type { Schemas } from '../../lib/client'
import type { Json } from '../../lib/json'
import type { Action, Item } from './items'

// Looking is what the parts of a detail share.
export interface Looking {
  id: string
  action: Action
  item: Item | undefined
  args: Json
  etag: string
  schema: Json | undefined
  tool: Schemas['Tool'] | undefined
  // stale says that the action is not as this person saw it.
  stale: boolean
  // unread are the values that are cut, and unseen those that cannot be brought into view; undefined while that is not
  // known.
  unread: readonly string[]
  unseen: readonly string[] | undefined
  folds: Folds
  complaints: readonly Complaint[]
  onDecided: () => void
}
