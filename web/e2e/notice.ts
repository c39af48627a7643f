// Mail of the sample mailbox that triage archives without a person.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { api, expect } from './fixture'

const host = 'mx.sample.example'

interface Listed {
  items: { action_id: string; mail?: { subject: string } }[]
}

interface Messages {
  items: { subject: string }[]
}

// receipt delivers a receipt of a machine, and returns its subject.
export async function receipt(sender: string): Promise<string> {
  const account = await api<{ connection: { path: string } }>('admin', 'GET', '/api/v1/triage/accounts/sample')
  const name = `${Date.now()}-${Math.random().toString(36).slice(2)}`
  const subject = `Your receipt for booking ${name}`
  const headers = [
    `Authentication-Results: ${host}; spf=pass smtp.mailfrom=${sender}; dkim=pass header.d=${sender}; ` +
      `dmarc=pass header.from=${sender}`,
    `Received: from out.${sender} (out.${sender} [192.0.2.7]) by ${host} with ESMTPS; Mon, 02 Mar 2026 08:00:00 +0000`,
    'Auto-Submitted: auto-generated',
    `Message-ID: <${name}@${sender}>`,
    `Date: ${new Date().toUTCString().replace('GMT', '+0000')}`,
    `From: Tickets <tickets@${sender}>`,
    'To: Ada <ada@brightwater.example>',
    `Subject: ${subject}`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
  ]
  const text =
    'Thank you for your booking.\n\nThe order is paid by card. Your receipt is in your account. ' +
    'This is an automated message.\n'
  writeFileSync(join(account.connection.path, 'new', `${name}.e2e`), `${headers.join('\n')}\n\n${text}`)
  await expect
    .poll(
      async () =>
        (await api<Messages>('operator', 'GET', '/api/v1/triage/messages?limit=50')).items.some(
          (message) => message.subject === subject,
        ),
      { timeout: 120_000 },
    )
    .toBe(true)
  return subject
}

// notices returns the actions that triage ran by itself, one for each of some receipts: the first mail of a sender is
// left alone.
export async function notices(count: number): Promise<string[]> {
  const sender = `rail-${Date.now()}.example`
  await receipt(sender)
  const subjects: string[] = []
  for (let i = 0; i < count; i++) subjects.push(await receipt(sender))
  const listed = async () =>
    (await api<Listed>('operator', 'GET', '/api/v1/inbox?kind=notify&limit=200')).items.filter((item) =>
      subjects.includes(item.mail?.subject ?? ''),
    )
  await expect.poll(async () => (await listed()).length, { timeout: 60_000 }).toBe(count)
  return (await listed()).map((item) => item.action_id)
}
