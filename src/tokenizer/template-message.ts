/** A message in the shape that chat templates read. */

export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

export interface TemplateMessage {
  readonly role: string;
  readonly content: string | readonly TextPart[];
  readonly [key: string]: unknown;
}
