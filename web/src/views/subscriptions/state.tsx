import { shown } from '../../lib/text'
import { Chip } from '../../ui'
import type { Subscription } from './fields'

// behind returns how many events a subscription was not told of yet.
export const behind = ({ behind }: Subscription) => (behind >= 10_000 ? '10,000 or more' : behind.toLocaleString('en'))

// SubscriptionState shows whether a subscription is on, and why it was switched off.
export function SubscriptionState({ one }: { one: Subscription }) {
  if (one.enabled) return <Chip tone="good">on</Chip>
  return (
    <>
      <Chip tone={one.disabled_reason ? 'bad' : 'calm'}>off</Chip> {shown(one.disabled_reason ?? '')}
    </>
  )
}
