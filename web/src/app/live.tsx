import { setPaused, useLive } from '../lib/live'
import { usePreferences } from '../lib/preferences'
import { clock, useNow } from '../lib/time'
import { Button, Icon, type IconName } from '../ui'

// LiveState is how live the page is, in a sign and words, and the switch that pauses it.
export function LiveState() {
  const { status, paused, missed } = useLive()
  const { zone } = usePreferences()
  const now = useNow()
  const wait = Math.max(0, Math.ceil(((status.retryAt ?? now) - now) / 1_000))
  const [tone, sign, text]: [string, IconName, string] = paused
    ? ['calm', 'pause', missed > 0 ? `paused by you, ${missed} since` : 'paused by you']
    : status.state === 'live'
      ? ['good', 'dot', 'live']
      : status.state === 'lost'
        ? [
            'bad',
            'triangle',
            `lost since ${clock(new Date(status.since ?? now), zone, now)}, reconnecting in ${wait} s`,
          ]
        : ['waits', 'clock', status.state]
  return (
    <div className="live">
      <span className={`live-state tone-${tone}`} data-live={paused ? 'paused' : status.state}>
        <Icon name={sign} />
        <span>{text}</span>
      </span>
      <Button
        kind="quiet"
        icon={paused ? 'play' : 'pause'}
        className="only-icon"
        aria-label={paused ? 'Resume live updates' : 'Pause live updates'}
        title={paused ? 'Resume live updates' : 'Pause live updates'}
        onClick={() => setPaused(!paused)}
      />
    </div>
  )
}
