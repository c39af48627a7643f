// The last hour or day as charts: samples of each minute.
import { useQuery } from '@tanstack/react-query'
import { get, type Problem, type Schemas } from '../../lib/client'
import { duration } from '../../lib/time'
import { Empty, Loading, ProblemNote, Tabs } from '../../ui'
import { Chart } from '../../ui/chart'
import { Command } from '../../ui/command'

type Answer = Schemas['Activity']
type Point = Answer['items'][number]

const minute = 60_000
const ranges = {
  hour: { label: 'Last hour', length: 60 * minute, step: '1m', stepLength: minute },
  day: { label: 'Last day', length: 24 * 60 * minute, step: '15m', stepLength: 15 * minute },
} as const
type Range = keyof typeof ranges

const ended = (...statuses: string[]) => {
  const rest = statuses.length === 0
  const known = ['sent', 'conflict', 'failed', 'unknown']
  return ({ ended }: Point) =>
    ended
      .filter(({ status }) => (rest ? !known.includes(status) : statuses.includes(status)))
      .reduce((sum, { actions }) => sum + Number(actions), 0)
}

const whole = (n: number) => n.toLocaleString('en')

export function Activity({ range, onRange }: { range: Range; onRange: (range: Range) => void }) {
  const { length, step, stepLength } = ranges[range]
  const activity = useQuery<Answer, Problem>({
    queryKey: ['config', 'activity', range],
    queryFn: ({ signal }) =>
      get<Answer>('/api/v1/activity', { since: new Date(Date.now() - length).toISOString(), step }, signal),
    refetchInterval: minute / 2,
  })
  const { data, error } = activity
  const points = data?.items ?? []
  const common = data && {
    points,
    since: Date.parse(data.since),
    until: Date.parse(data.until),
    step: stepLength,
  }
  const per = range === 'hour' ? 'a minute' : 'in 15 minutes'
  return (
    <section className="panel stack" aria-labelledby="activity">
      <h2 id="activity">Activity</h2>
      <Tabs
        label="Range of the charts"
        tabs={(Object.keys(ranges) as Range[]).map((key) => ({ key, label: ranges[key].label }))}
        chosen={range}
        onChoose={onRange}
      />
      {error && <ProblemNote error={error} what="The charts were not read" onRetry={() => void activity.refetch()} />}
      {!data && !error && <Loading what="the charts" />}
      {data && points.length === 0 && (
        <Empty title="No samples in this time">
          <p>A worker takes one each minute.</p>
        </Empty>
      )}
      {common && points.length > 0 && (
        <div className="charts">
          <Chart<Point>
            {...common}
            title="Backlog"
            write={whole}
            lines={[
              { name: 'due', like: 'bad', value: (p) => Number(p.due) },
              { name: 'in flight', like: 'waits', value: (p) => Number(p.in_flight) },
              { name: 'scheduled', like: 'calm', value: (p) => Number(p.scheduled) },
              { name: 'for people', like: 'person', value: (p) => Number(p.undecided) },
            ]}
          />
          <Chart<Point>
            {...common}
            title={`Ended, ${per}`}
            write={whole}
            lines={[
              { name: 'sent', like: 'good', value: ended('sent', 'conflict') },
              { name: 'failed', like: 'bad', value: ended('failed') },
              { name: 'unknown', like: 'unknown', value: ended('unknown') },
              { name: 'others', like: 'calm', value: ended() },
            ]}
          />
          <Chart<Point>
            {...common}
            title="Oldest due"
            write={(n) => duration(n * 1_000)}
            lines={[{ name: 'waited', like: 'waits', value: (p) => Number(p.oldest_due_seconds) }]}
          />
          <Chart<Point>
            {...common}
            title="Workers"
            write={whole}
            lines={[{ name: 'working', like: 'good', value: (p) => Number(p.workers) }]}
          />
        </div>
      )}
      {points.some((p) => p.estimated) && <p className="muted small">Long backlogs are estimates.</p>}
      <Command of="countersign activity" />
    </section>
  )
}
