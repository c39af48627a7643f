// States: each a sign, a word and a colour, never a colour alone.
import { Icon, type IconName } from './icon'

export type Tone = 'person' | 'waits' | 'good' | 'bad' | 'unknown' | 'drift' | 'calm'

const states: Record<string, [word: string, sign: IconName, tone: Tone]> = {
  pending: ['needs a person', 'quarter', 'person'],
  approved: ['approved, waits', 'clock', 'waits'],
  executing: ['executing', 'half', 'waits'],
  completed: ['completed', 'check', 'good'],
  sent: ['sent', 'check', 'good'],
  conflict: ['already existed', 'equals', 'good'],
  failed: ['failed', 'cross', 'bad'],
  denied: ['denied', 'barred', 'bad'],
  unknown: ['unknown', 'diamond', 'unknown'],
  drift: ['drift', 'triangle', 'drift'],
  quarantine: ['quarantine', 'triangle', 'drift'],
  expired: ['expired', 'hourglass', 'calm'],
  skipped: ['skipped', 'skip', 'calm'],
  undone: ['undone', 'undo', 'calm'],
  paused: ['paused', 'pause', 'calm'],
  stopped: ['stopped', 'pause', 'calm'],
  canceled: ['canceled', 'barred', 'calm'],
  cancelled: ['canceled', 'barred', 'calm'],
  running: ['running', 'half', 'waits'],
  waiting: ['waits', 'clock', 'waits'],
  reverting: ['reverting', 'undo', 'waits'],
  reverted: ['reverted', 'undo', 'calm'],
}

// State shows a state. A word that the page does not know is shown as it is.
export function State({ state, word }: { state: string; word?: string }) {
  const [known, sign, tone] = states[state] ?? [state.replaceAll('_', ' '), 'dot', 'calm']
  return (
    <span className={`state tone-${tone}`}>
      <Icon name={sign} />
      {word ?? known}
    </span>
  )
}

// Risk shows one to three bars and the word.
export function Risk({ risk }: { risk: string }) {
  const level = { low: 1, medium: 2, high: 3 }[risk] ?? 0
  return (
    <span className={`risk risk-${level}`}>
      <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
        {[1, 2, 3].map((bar) => (
          <rect
            key={bar}
            x={bar * 4.5 - 2.5}
            y={14 - bar * 4}
            width="3"
            height={bar * 4}
            className={bar <= level ? 'on' : 'off'}
          />
        ))}
      </svg>
      {risk}
    </span>
  )
}
