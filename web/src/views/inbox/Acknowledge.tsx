// What triage did without a person: once somebody has seen it, it is no longer listed.
import { useState } from 'react'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { Button, State, toast } from '../../ui'
import { Refusal, Underway } from './Bar'
import { acknowledge, told } from './decide'
import { type Item, keyOf } from './items'
import type { Looking } from './looking'
import { rememberAll, useMemory } from './memory'
import { whyNotOf } from './reasons'
import { nameOf, send, useQueue } from './sending'

const outcome = { words: 'acknowledged', state: 'completed' } as const

// Acknowledge acknowledges the notice that is open.
export function Acknowledge(looking: Looking) {
  const { id, item, onDecided } = looking
  const memory = useMemory(id)
  const may = useMay()
  const queue = useQueue()
  const over = memory.sent !== undefined || memory.outcome !== undefined
  const whyNot = may('acknowledgeInbox') ?? queue ?? whyNotOf(item)
  const name = nameOf(looking)
  const run = () => {
    send({
      id,
      name,
      doing: 'acknowledging',
      not: 'not acknowledged',
      send: () => acknowledge([id]),
      done: () => {
        toast({ text: `Acknowledged: ${name}.` })
        return outcome
      },
    })
    onDecided()
  }
  useCommands([!over && { id: 'acknowledge', whyNot, run }])
  if (memory.sent) return <Underway sent={memory.sent} />
  return (
    <footer className="bar" role="group" aria-label="Notice">
      {memory.refused && <Refusal of={memory.refused} />}
      <div className="row">
        {memory.outcome ? (
          <State state={memory.outcome.state} word={memory.outcome.words} />
        ) : (
          <Button kind="primary" command="acknowledge" whyNot={whyNot} onClick={run}>
            Acknowledge
          </Button>
        )}
        <span className="muted">Triage did this by itself.</span>
      </div>
    </footer>
  )
}

// AcknowledgeMarked acknowledges the notices that are marked in the list.
export function AcknowledgeMarked({ items, onDone }: { items: readonly Item[]; onDone: () => void }) {
  const may = useMay()
  const [busy, setBusy] = useState(false)
  const whyNot = may('acknowledgeInbox') ?? items.map(whyNotOf).find(Boolean)
  const run = () => {
    if (busy) return
    setBusy(true)
    const ids = items.map(keyOf)
    void acknowledge(ids)
      .then(
        () => {
          rememberAll(ids.map((id) => [id, { outcome }] as const))
          toast({ text: `Acknowledged ${ids.length}.` })
          onDone()
        },
        (error: unknown) => toast({ text: `Not acknowledged. ${told(error)}`, tone: 'bad', lastsMs: 0 }),
      )
      .finally(() => setBusy(false))
  }
  useCommands([{ id: 'acknowledge', whyNot, run }])
  return (
    <Button kind="primary" command="acknowledge" whyNot={whyNot} busy={busy} onClick={run}>
      Acknowledge {items.length}
    </Button>
  )
}
