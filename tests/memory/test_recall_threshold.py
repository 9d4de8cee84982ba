"""How well the minimum similarity separates memories that fit a question from others."""

import numpy as np
import pytest

from agents.knowledge import embeddings
from agents.memory.recall import MIN_MEMORY_SIMILARITY

pytestmark = pytest.mark.slow

MEMORIES = [
    "I work at a bakery in Lyon",
    "My daughter is called Emma and is seven years old",
    "I am allergic to peanuts",
    "I use a MacBook with an M3 processor",
    "My project deadline is the end of March",
    "I live in Osaka",
    "I drive an electric car, a Nissan Leaf",
    "I am learning the piano",
    "Our team uses PostgreSQL 16 in production",
    "My manager is Tanaka-san",
    "I am a vegetarian",
    "I run marathons and train four times a week",
    "私は京都に住んでいます",
    "猫を二匹飼っています",
    "卵アレルギーがあります",
    "来月ロンドンに出張します",
    "会社では経理を担当しています",
    "息子は小学三年生です",
    "フランス語を勉強しています",
    "開発ではPythonとDjangoを使っています",
]
# A question and the memory that helps to answer it. They share no telling word.
FITTING = [
    ("What could I bake for the shop on Monday?", 0),
    ("gift ideas for my child's birthday", 1),
    ("Is this satay sauce safe for me to eat?", 2),
    ("Which laptop charger fits my computer?", 3),
    ("How many weeks do I have left to finish?", 4),
    ("What is the weather like at home this weekend?", 5),
    ("Where can I charge on the way to Kyoto?", 6),
    ("Recommend sheet music for beginners", 7),
    ("Write a query that lists slow statements in our database", 8),
    ("Draft a mail asking my boss for leave", 9),
    ("Suggest a dinner recipe for tonight", 10),
    ("Plan my workouts for next month", 11),
    ("近所のおすすめの散歩コースを教えて", 12),
    ("ペットの餌はどれがいいですか", 13),
    ("このケーキは食べても大丈夫ですか", 14),
    ("旅行の荷物リストを作って", 15),
    ("月末の締め処理の手順を整理したい", 16),
    ("子どもの夏休みの宿題を手伝って", 17),
    ("フランスの映画を字幕なしで見たい", 18),
    ("ウェブアプリのテストの書き方", 19),
    ("何を料理すればいい? 肉は食べません", 10),
    ("電気自動車の充電スポット", 6),
    ("What should I see near my home in Kyoto?", 12),
    ("food for my cats", 13),
    ("packing list for my trip to London", 15),
]
UNRELATED = [
    "What is the capital of Australia?",
    "Convert 20 miles to kilometers",
    "Explain quantum entanglement",
    "Write a haiku about autumn",
    "Who won the 1998 world cup?",
    "Translate 'good morning' to Spanish",
    "How do black holes form?",
    "Sort this list of numbers: 4, 2, 9",
    "Summarize the plot of Hamlet",
    "What does HTTP 404 mean?",
    "二次方程式の解の公式は?",
    "1ドルは何円ですか",
    "光の速さを教えて",
    "徳川家康について教えて",
    "正規表現でメールアドレスを検証する",
    "この文章を要約して",
    "明日までに株価は上がりますか",
    "How tall is Mount Everest?",
    "Give me a regex for dates",
    "What is the difference between TCP and UDP?",
]


def test_the_minimum_recalls_most_and_hardly_anything_unrelated():
    memories = np.array(embeddings.embed(MEMORIES, model="local"))
    asked = np.array(embeddings.embed([text for text, _ in FITTING], "query", model="local"))
    others = np.array(embeddings.embed(UNRELATED, "query", model="local"))

    fitting = [float(one @ memories[at]) for one, (_, at) in zip(asked, FITTING, strict=True)]
    unrelated = (others @ memories.T >= MIN_MEMORY_SIMILARITY).sum() / len(UNRELATED)

    assert sum(score >= MIN_MEMORY_SIMILARITY for score in fitting) / len(fitting) >= 0.55
    assert unrelated <= 0.1
