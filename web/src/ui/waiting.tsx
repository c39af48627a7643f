// What an action waits for, and until when: on every row that something holds.
import type { Schemas } from '../lib/client'
import { shown } from '../lib/text'
import { Icon, type IconName } from './icon'
import { Time } from './time'

const signs: Record<string, [sign: IconName, word: string]> = {
  approval: ['person', 'waits for people'],
  quiet_hours: ['hourglass', 'quiet hours'],
  paused: ['pause', 'paused until an operator resumes'],
  breaker_open: ['barred', 'source failed too often'],
  login_lost: ['barred', 'its source needs a new login'],
  login_unavailable: ['hourglass', 'its source cannot renew its login'],
  bucket: ['hourglass', 'its bucket has reached its limits'],
  retry_after: ['hourglass', 'provider asked to wait'],
  retry: ['refresh', 'next attempt'],
  not_before: ['clock', 'not before'],
  start: ['clock', 'next in turn'],
  turn: ['clock', 'next in turn'],
}

// Waits shows it in a line. What the page does not know is told in the API's words.
export function Waits({ waiting, expires }: { waiting: Schemas['Waiting']; expires?: string | null | undefined }) {
  const until = waiting.until ?? (waiting.for === 'approval' ? expires : undefined)
  const [sign, word] = signs[waiting.for] ?? ['clock', `waits for ${waiting.message}`]
  return (
    <span className="waits" title={`waits for ${shown(waiting.message)}`}>
      <Icon name={sign} />
      {(waiting.for !== 'approval' || !until) && <span className="cut">{shown(word)}</span>}
      {until && (
        <span className="muted nowrap">
          {waiting.for === 'approval' && 'expires '}
          <Time at={until} />
        </span>
      )}
    </span>
  )
}
