import { usePreferences } from '../lib/preferences'
import { absolute, clock, relative, useNow, zoneName } from '../lib/time'

// Time shows a point in time: how far away ("relative"), or the clock ("clock", with the day where it is another), or
// both. The whole of it, with the zone, is read out and shown on pointing.
export function Time({ at, as = 'relative' }: { at: string | undefined | null; as?: 'relative' | 'clock' | 'both' }) {
  const { zone } = usePreferences()
  const now = useNow(as === 'clock' ? 60_000 : 5_000)
  if (!at) return null
  const text = {
    relative: relative(at, now),
    clock: clock(at, zone, now),
    both: `${clock(at, zone, now)}, ${relative(at, now)}`,
  }[as]
  return (
    <time dateTime={at} title={`${absolute(at, zone)} ${zoneName(zone)}`}>
      {text}
    </time>
  )
}
