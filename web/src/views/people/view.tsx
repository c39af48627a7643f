// People and tokens: roles, credentials, sessions and logins.
import { useLocation } from 'wouter'
import { useMay } from '../../lib/me'
import { Tabs } from '../../ui'
import '../../form/form.css'
import './people.css'
import { Sessions } from '../settings/sessions'
import { Operators } from './operators'
import { Others } from './others'
import { Providers } from './providers'
import { Tokens } from './tokens'

const tabs = [
  { key: 'people', label: 'People' },
  { key: 'tokens', label: 'Tokens' },
  { key: 'sessions', label: 'Sessions' },
  { key: 'login', label: 'Login' },
] as const

type Key = (typeof tabs)[number]['key']

export default function View({ id = 'people' }: { id?: string }) {
  const [, go] = useLocation()
  const may = useMay()
  const chosen = tabs.find((tab) => tab.key === id)?.key ?? 'people'
  return (
    <div className="page">
      <header className="page-head">
        <h1>People and tokens</h1>
      </header>
      <Tabs<Key> label="People and tokens" tabs={tabs} chosen={chosen} onChoose={(key) => go(`/people/${key}`)}>
        <div className="stack">
          {chosen === 'people' && <Guarded whyNot={may('listOperators')} view={<Operators />} />}
          {chosen === 'tokens' && <Guarded whyNot={may('listTokens')} view={<Tokens />} />}
          {chosen === 'sessions' && (
            <>
              <Sessions />
              <Guarded whyNot={may('listSessions')} view={<Others />} />
            </>
          )}
          {chosen === 'login' && <Guarded whyNot={may('listProviders')} view={<Providers />} />}
        </div>
      </Tabs>
    </div>
  )
}

// Guarded shows why a person may not see a part, instead of asking for it.
function Guarded({ whyNot, view }: { whyNot: string | undefined; view: React.ReactNode }) {
  if (!whyNot) return view
  return (
    <p className="muted" role="status">
      {whyNot} An administrator or an owner may.
    </p>
  )
}
