// A subscription as a form, and the body that is sent.
import type { Schemas } from '../../lib/client'
import { lines } from '../../lib/lines'

export type Subscription = Schemas['Subscription']

export interface Fields {
  source: string
  kinds: string
  tool: string
  min_risk: string
  channel: string
  link: string
  rate_bucket: string
  show_mail: boolean
  enabled: boolean
}

// Stored is the body that is sent, without the signing secret.
export type Stored = { source: string; [name: string]: string | string[] | boolean }

export function fieldsOf(one: Partial<Subscription> | Stored | undefined): Fields {
  const of = (one ?? {}) as Partial<Subscription>
  return {
    source: of.source ?? '',
    kinds: (of.kinds ?? []).join('\n'),
    tool: of.tool ?? '',
    min_risk: of.min_risk ?? '',
    channel: of.channel ?? '',
    link: of.link ?? '',
    rate_bucket: of.rate_bucket ?? '',
    show_mail: of.show_mail ?? false,
    enabled: of.enabled ?? true,
  }
}

// stored returns the body without empty texts, for which the API has defaults.
export function stored({ kinds, show_mail, enabled, source, ...texts }: Fields): Stored {
  return {
    source: source.trim(),
    ...(lines(kinds).length > 0 && { kinds: lines(kinds) }),
    ...Object.fromEntries(
      Object.entries(texts).flatMap(([name, text]) => (text.trim() ? [[name, text.trim()] as const] : [])),
    ),
    show_mail,
    enabled,
  }
}

// automationOf returns the automation under which a subscription's deliveries run.
export const automationOf = (one: Pick<Subscription, 'subscription_id'>) =>
  `countersign.subscription.${one.subscription_id}`

type Delivery = Pick<Schemas['Action'], 'phase' | 'waiting' | 'envelope'>

// Again is the way to send a delivery again: a dead letter is replayed, 'twice' if it may have arrived already; any
// other one that has ended is sent again by an action of its own.
export type Again = 'once' | 'twice' | 'resend'

// mayBeDead reports whether a delivery is a dead letter unless somebody discarded it.
export const mayBeDead = ({ phase }: Delivery) => phase === 'failed' || phase === 'unknown'

// againOf returns the way for a delivery, given whether its dead letter is gone.
export function againOf(delivery: Delivery, gone = false): Again | undefined {
  const { phase, envelope } = delivery
  if (mayBeDead(delivery) && !gone) return phase === 'unknown' ? 'twice' : 'once'
  const ended = !['pending', 'approved', 'executing'].includes(phase)
  return ended && envelope.tool.name === 'deliver' ? 'resend' : undefined
}
