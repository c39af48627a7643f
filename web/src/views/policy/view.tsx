import { useLocation } from 'wouter'
import { Tabs } from '../../ui'
import { File } from './file'
import { Grants } from './grants'
import { Matrix } from './matrix'
import { Reviews } from './reviews'
import { Rules } from './rules'
import './policy.css'

const tabs = [
  { key: 'matrix', label: 'Matrix', view: Matrix },
  { key: 'rules', label: 'Rules', view: Rules },
  { key: 'reviews', label: 'Reviews', view: Reviews },
  { key: 'grants', label: 'Grants', view: Grants },
  { key: 'file', label: 'File', view: File },
] as const

// The policy of the organisation: what runs at once, what waits for a person, and what is denied.
export default function View({ id }: { id?: string }) {
  const [, go] = useLocation()
  const tab = tabs.find(({ key }) => key === id) ?? tabs[0]
  return (
    <div className="page page-policy">
      <header className="page-head">
        <h1>Policy</h1>
      </header>
      <Tabs label="Parts of the policy" tabs={tabs} chosen={tab.key} onChoose={(key) => go(`/policy/${key}`)}>
        <tab.view />
      </Tabs>
    </div>
  )
}
