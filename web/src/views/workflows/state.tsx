import type { Schemas } from '../../lib/client'
import { State } from '../../ui'

// looks gives each state of a workflow the sign of the state that it is most like.
const looks: Partial<Record<Schemas['WorkflowState'], [like: string, word: string]>> = {
  stuck: ['unknown', 'stuck'],
  compensation_failed: ['failed', 'reversal failed'],
  resolved: ['stopped', 'resolved'],
}

export function WorkflowState({ state }: { state: Schemas['WorkflowState'] }) {
  const [like, word] = looks[state] ?? [state, undefined]
  return word ? <State state={like} word={word} /> : <State state={like} />
}
