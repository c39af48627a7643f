// What bounds actions, tab by tab.
import { useLocation } from 'wouter'
import { Empty, Tabs } from '../../ui'
import { Breakers } from './breakers'
import { Buckets } from './buckets'
import { Contacts } from './contacts'
import { Employees } from './employees'
import { File } from './file'
import { QuietHours } from './quiet'
import './limits.css'

const tabs = [
  { key: 'buckets', label: 'Buckets', panel: Buckets },
  { key: 'quiet-hours', label: 'Quiet hours', panel: QuietHours },
  { key: 'do-not-contact', label: 'Do not contact', panel: Contacts },
  { key: 'breakers', label: 'Breakers', panel: Breakers },
  { key: 'employees', label: 'Employees', panel: Employees },
  { key: 'file', label: 'File', panel: File },
] as const

export default function Limits({ id = tabs[0].key }: { id?: string }) {
  const [, go] = useLocation()
  const chosen = tabs.find((tab) => tab.key === id)
  if (!chosen) return <Empty whole title="Unknown tab" />
  const { panel: Panel } = chosen
  return (
    <div className="page page-limits">
      <header className="page-head">
        <h1>Limits</h1>
      </header>
      <Tabs label="Limits" tabs={tabs} chosen={chosen.key} onChoose={(key) => go(`/limits/${key}`)}>
        <div className="stack">
          <Panel />
        </div>
      </Tabs>
    </div>
  )
}
