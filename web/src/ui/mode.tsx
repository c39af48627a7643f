import { shown } from '../lib/text'
import { Icon, type IconName } from './icon'
import type { Tone } from './state'

const modes: Record<string, [word: string, sign: IconName, tone: Tone]> = {
  allow: ['allow', 'check', 'good'],
  require_approval: ['ask', 'quarter', 'person'],
  deny: ['deny', 'barred', 'bad'],
}

// Mode shows a mode of policy; inherited ones are lighter.
export function Mode({ mode, inherited }: { mode: string; inherited?: boolean }) {
  const [word, sign, tone] = modes[mode] ?? [shown(mode), 'diamond', 'unknown']
  return (
    <span className={inherited ? 'mode muted' : `state tone-${tone}`}>
      <Icon name={sign} />
      {word}
    </span>
  )
}
