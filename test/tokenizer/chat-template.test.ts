/** Chat templates: where they come from, what they are given, and that none of them can hurt the server. */
import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/tokenizer/json";
import { byteLevel, type FilesChange } from "./tokenizer-builder";

const plainTemplate = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";

/** The whole rendered text of a conversation. */
function render(
  change: FilesChange,
  messages: readonly JsonObject[],
  more: { tools?: JsonObject[] } = {},
): string {
  const tokenizer = byteLevel(change);
  return tokenizer
    .renderChat({ messages, addGenerationPrompt: true, ...more })
    .map((piece) => (typeof piece === "string" ? piece : tokenizer.vocabulary.entry(piece).text))
    .join("");
}

const user = (content: JsonObject["content"]): JsonObject => ({ role: "user", content });

describe("a template", () => {
  test("is read from its own file first", () => {
    const change = { chatTemplate: "file", tokenizerConfig: { chat_template: "config" } };
    expect(render(change, [user("x")])).toBe("file");
  });

  test("is read from tokenizer_config.json, as text or by name", () => {
    const named = [
      { name: "tool_use", template: "tools: {{ tools[0].function.name }}" },
      { name: "default", template: "no tools" },
    ];
    expect(render({ chatTemplate: undefined, tokenizerConfig: { chat_template: "text" } }, [user("x")])).toBe(
      "text",
    );
    const change = { chatTemplate: undefined, tokenizerConfig: { chat_template: named } };
    expect(render(change, [user("x")])).toBe("no tools");
    expect(render(change, [user("x")], { tools: [{ function: { name: "f" } }] })).toBe("tools: f");
  });

  test("knows the named tokens, the generation prompt and the request's variables", () => {
    const chatTemplate = "{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}{{ enable_thinking }}";
    const tokenizer = byteLevel({ chatTemplate });
    const pieces = tokenizer.renderChat({
      messages: [user("x")],
      addGenerationPrompt: false,
      templateVariables: { enable_thinking: "off" },
    });
    expect(pieces).toEqual([256, 257, "falseoff"]);
  });

  test("cannot have its messages replaced by a variable of the request", () => {
    const tokenizer = byteLevel({ chatTemplate: "{{ messages[0].content }}" });
    const pieces = tokenizer.renderChat({
      messages: [user("mine")],
      addGenerationPrompt: true,
      templateVariables: { messages: [user("theirs")] },
    });
    expect(pieces).toEqual(["mine"]);
  });

  test("that is missing is said so", () => {
    const tokenizer = byteLevel({ chatTemplate: undefined });
    expect(tokenizer.hasChatTemplate).toBe(false);
    expect(() => tokenizer.renderChat({ messages: [user("x")], addGenerationPrompt: true })).toThrow(
      "no chat template",
    );
  });

  test("with an unknown filter or test is refused when the model is loaded", () => {
    expect(() => byteLevel({ chatTemplate: "{{ messages | frobnicate }}" })).toThrow(
      "unknown filter: frobnicate",
    );
    expect(() => byteLevel({ chatTemplate: "{% if messages is odious %}{% endif %}" })).toThrow(
      "unknown test: odious",
    );
    expect(() => byteLevel({ chatTemplate: "{% if %}" })).toThrow("cannot be read");
  });
});

describe("contents", () => {
  const parts = [
    { type: "text", text: "a" },
    { type: "text", text: "b" },
  ];

  test("of several parts are joined for a template that prints texts", () => {
    expect(render({ chatTemplate: plainTemplate }, [user(parts)])).toBe("[user]a\nb");
  });

  test("of several parts are left to a template that reads parts", () => {
    const chatTemplate =
      "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}" +
      "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}{% endfor %}";
    expect(render({ chatTemplate }, [user(parts)])).toBe("ab");
  });

  test("of null beside tool calls print nothing, and arguments are objects", () => {
    const chatTemplate =
      "{% for m in messages %}{{ m.content }}{{ m.tool_calls[0].function.arguments.level }}{% endfor %}";
    const call = { id: "c", type: "function", function: { name: "f", arguments: '{"level": 3}' } };
    expect(render({ chatTemplate }, [{ role: "assistant", content: null, tool_calls: [call] }])).toBe("3");
  });

  test("that are not text are refused by name", () => {
    expect(() =>
      render({ chatTemplate: plainTemplate }, [user([{ type: "image_url", image_url: {} }])]),
    ).toThrow("content of type image_url");
    expect(() => render({ chatTemplate: plainTemplate }, [user(3)])).toThrow("a string or a list of parts");
  });
});

describe("the role developer", () => {
  const messages = [{ role: "developer", content: "x" }];

  test("becomes system for a template that does not know it", () => {
    expect(render({ chatTemplate: plainTemplate }, messages)).toBe("[system]x");
  });

  test("is left to a template that does", () => {
    const chatTemplate = `{% if messages[0].role == "developer" %}dev{% endif %}`;
    expect(render({ chatTemplate }, messages)).toBe("dev");
  });
});

describe("a template that misbehaves", () => {
  const failing: readonly (readonly [string, string, string])[] = [
    ["says no in its own words", "{{ raise_exception('roles must alternate') }}", "roles must alternate"],
    ["loops for ever", "{% for i in range(1000000000) %}x{% endfor %}", "does not come to an end"],
    [
      "loops in loops",
      "{% for i in range(9999) %}{% for j in range(9999) %}{{ j }}{% endfor %}{% endfor %}",
      "end",
    ],
    ["calls itself", "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "nests too deeply"],
    [
      "doubles a text",
      "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "too long a text",
    ],
    ["calls what is not there", "{{ messages[0].content.nothing() }}", ""],
  ];

  test.each(failing)("and %s ends with an error of the request", (_name, chatTemplate, message) => {
    const tokenizer = byteLevel({ chatTemplate });
    const beginMs = performance.now();
    expect(() => tokenizer.renderChat({ messages: [user("x")], addGenerationPrompt: true })).toThrow(message);
    expect(performance.now() - beginMs).toBeLessThan(2000);
  });

  test("leaves loops with break and continue as deep as they were", () => {
    const chatTemplate =
      "{% for i in range(2000) %}{% if i < 1990 %}{% continue %}{% endif %}{{ i }},{% endfor %}";
    expect(render({ chatTemplate }, [user("x")])).toContain("1999,");
  });
});
