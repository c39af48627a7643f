import { type Me, useMe } from '../../lib/me'
import { setPreferences, usePreferences } from '../../lib/preferences'
import { logout } from '../../lib/session'
import { shown } from '../../lib/text'
import { zoneName } from '../../lib/time'
import { Button, Field, Time, toast } from '../../ui'
import { Automations } from './automations'
import { Logins } from './logins'
import { Runs } from './runs'
import { Sessions } from './sessions'
import { Tags } from './tags'
import { DangerousTools, Organisation, Retention } from './tenant'
import '../people/people.css'

export default function Settings() {
  const me = useMe().data
  return (
    <div className="page">
      <header className="page-head">
        <h1 className="grow">Settings</h1>
        <Button onClick={() => void logout()}>Log out</Button>
      </header>
      {me && <Person me={me} />}
      <Display />
      <Organisation />
      <DangerousTools />
      <Retention kind="actions" />
      <Retention kind="events" />
      <Automations />
      <Runs />
      <Tags />
      <Logins />
      <Sessions />
    </div>
  )
}

function Person({ me }: { me: Me }) {
  return (
    <section className="panel stack" aria-labelledby="settings-me">
      <h2 id="settings-me">You</h2>
      <dl className="terms">
        <div>
          <dt>Name</dt>
          <dd>{shown(me.name)}</dd>
        </div>
        {me.email && (
          <div>
            <dt>Mail</dt>
            <dd>{shown(me.email)}</dd>
          </div>
        )}
        <div>
          <dt>Organisation</dt>
          <dd>{shown(me.tenant)}</dd>
        </div>
        <div>
          <dt>Role</dt>
          <dd>{me.role}</dd>
        </div>
        {me.session && (
          <div>
            <dt>This session ends</dt>
            <dd>
              <Time at={me.session.expires_at} as="both" />
            </dd>
          </div>
        )}
      </dl>
    </section>
  )
}

// setNotices switches the notifications of this browser, which asks the person for its permission.
async function setNotices(to: 'on' | 'off') {
  const allowed = to === 'off' || ('Notification' in window && (await Notification.requestPermission()) === 'granted')
  if (allowed) setPreferences({ notices: to })
  else toast({ text: 'This browser blocks notifications of this page. Allow them in its settings.', tone: 'bad' })
}

function Display() {
  const { theme, zone, letters, notices } = usePreferences()
  return (
    <section className="panel stack" aria-labelledby="settings-display">
      <h2 id="settings-display">This browser</h2>
      <div className="fields">
        <Field label="Colours">
          {(wiring) => (
            <select
              {...wiring}
              value={theme}
              onChange={(event) => setPreferences({ theme: event.target.value as typeof theme })}
            >
              <option value="system">System default</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </select>
          )}
        </Field>
        <Field label="Times">
          {(wiring) => (
            <select
              {...wiring}
              value={zone}
              onChange={(event) => setPreferences({ zone: event.target.value as typeof zone })}
            >
              <option value="local">Local: {zoneName('local')}</option>
              <option value="UTC">UTC</option>
            </select>
          )}
        </Field>
        <Field label="Single-letter keys" hint="Without them, Ctrl or ⌘ with K lists every command.">
          {(wiring) => (
            <select
              {...wiring}
              value={letters}
              onChange={(event) => setPreferences({ letters: event.target.value as typeof letters })}
            >
              <option value="on">On</option>
              <option value="off">Off</option>
            </select>
          )}
        </Field>
        <Field label="Notifications" hint="How many actions wait, while you look elsewhere; never what they are.">
          {(wiring) => (
            <select
              {...wiring}
              value={notices}
              onChange={(event) => void setNotices(event.target.value as typeof notices)}
            >
              <option value="off">Off</option>
              <option value="on">On</option>
            </select>
          )}
        </Field>
      </div>
    </section>
  )
}
